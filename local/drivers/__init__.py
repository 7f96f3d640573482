"""What brings resources to the platform: the program under Pulumi's mock hook (and, later, the real engine)."""
