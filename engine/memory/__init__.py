"""What the machine has, what models will take, and which way of sharing it is best."""
