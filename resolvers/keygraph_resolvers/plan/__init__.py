"""What will be read: a document is compiled into a plan, which is run, explained and priced."""
