"""Fleet: one prompt over many repositories, on processes of this machine or on a Dask cluster."""
