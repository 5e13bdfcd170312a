"""What dies on a device's core: programs and packages are run on exactly that core before a cluster is made of them."""
