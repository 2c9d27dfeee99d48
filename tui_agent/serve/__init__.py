"""The app in a browser: a server on this machine, with one app for each page that is open.

Only this room uses the web server's library; the page's client comes from textual-serve.
"""
