"""Who answers: the models, their catalogue and prices, the built-in model."""
