"""One module an AWS service; one handler a resource type, with the verbs of a Pulumi provider."""
