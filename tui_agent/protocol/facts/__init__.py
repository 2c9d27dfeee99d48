"""Plain records of an open session: made by the session, drawn by any front end."""
