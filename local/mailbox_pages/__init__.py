"""The mailbox in a browser: what the local SES accepted, for the person who runs the platform."""
