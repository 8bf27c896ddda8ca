"""What minimises a function of a weight vector; knows nothing of methods or features."""
