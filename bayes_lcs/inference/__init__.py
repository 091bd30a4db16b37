"""How beliefs meet data: the exact subset recursion, and samplers."""
