"""The deployment on Flower: server app, client app, and what crosses between them."""
