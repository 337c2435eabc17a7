"""What is remembered: schema, migrations, one module per noun."""
