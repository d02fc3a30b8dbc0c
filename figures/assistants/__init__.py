"""A door for assistants and scripts: questions about runs, answered with numbers, their errors and their cost."""
