"""The real Pulumi engine on this machine: its CLI, the platform as its `aws` provider, a stage to deploy with both."""
