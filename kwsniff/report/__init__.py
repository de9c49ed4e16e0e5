"""One HTML file that works without a network: findings, their proof, charts."""
