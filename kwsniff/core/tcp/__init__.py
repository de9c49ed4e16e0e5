"""TCP segments to ordered bytes and gaps, per connection and direction."""
