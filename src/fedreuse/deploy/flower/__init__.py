"""Deployment on Flower: server app, client app, and their messages."""
