"""What every room shares and nothing else: errors, checks, progress, the model file."""
