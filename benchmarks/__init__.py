"""How fast it is: one command per bar, each beside a direct call and a bare relay in the same run."""
