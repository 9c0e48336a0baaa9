"""Reading: the steps of a plan run against the store, through the dataloaders."""
