"""ECR: repositories and what they clean up. There is no image store behind them here."""

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.refusals import found, gone
from local.handlers.shapes import tag_list, tags_gone, tags_of


class Repository(Handler):
    """A repository. Deleting refuses while it holds images, unless the program forces it."""

    resource_type = "aws:ecr/repository:Repository"
    replaced_by = frozenset({"encryptionConfigurations", "name"})

    def create(self, name: str, inputs: Inputs) -> Made:
        request = {}
        if encryption := inputs.get("encryptionConfigurations"):
            request["encryptionConfiguration"] = {
                key: encryption[0][key] for key in ("encryptionType", "kmsKey") if encryption[0].get(key)
            }
        repository = inputs.get("name") or name
        made = self.platform.aws("ecr").create_repository(
            repositoryName=repository,
            imageTagMutability=inputs.get("imageTagMutability", "MUTABLE"),
            imageScanningConfiguration=_scanning(inputs),
            tags=tag_list(inputs),
            **request,
        )["repository"]
        return Made(repository, _outputs(made["repositoryArn"], made["repositoryUri"], inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        repository = id or inputs.get("name")
        if not repository:
            return None
        answer = found(lambda: self.platform.aws("ecr").describe_repositories(repositoryNames=[repository]))
        if answer is None:
            return None
        live = answer["repositories"][0]
        return Made(repository, _outputs(live["repositoryArn"], live["repositoryUri"], inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        ecr = self.platform.aws("ecr")
        ecr.put_image_tag_mutability(repositoryName=id, imageTagMutability=new.get("imageTagMutability", "MUTABLE"))
        ecr.put_image_scanning_configuration(repositoryName=id, imageScanningConfiguration=_scanning(new))
        if removed := tags_gone(old, new):
            ecr.untag_resource(resourceArn=old["arn"], tagKeys=removed)
        if tags := tag_list(new):
            ecr.tag_resource(resourceArn=old["arn"], tags=tags)
        return _outputs(old["arn"], old["repositoryUrl"], new)

    def delete(self, id: str, outputs: Outputs) -> None:
        ecr = self.platform.aws("ecr")
        force = bool(outputs.get("forceDelete"))
        gone(lambda: ecr.delete_repository(repositoryName=id, force=force))


class LifecyclePolicy(Handler):
    """Which images of a repository expire."""

    resource_type = "aws:ecr/lifecyclePolicy:LifecyclePolicy"
    replaced_by = frozenset({"policy", "repository"})

    def create(self, name: str, inputs: Inputs) -> Made:
        self.platform.aws("ecr").put_lifecycle_policy(
            repositoryName=inputs["repository"], lifecyclePolicyText=_text(inputs["policy"])
        )
        return Made(inputs["repository"], dict(inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        repository = id or inputs["repository"]
        exists = found(lambda: self.platform.aws("ecr").get_lifecycle_policy(repositoryName=repository)) is not None
        return Made(repository, dict(inputs)) if exists else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        raise HandlerError("a lifecycle policy cannot change: every input replaces it")

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("ecr").delete_lifecycle_policy(repositoryName=id))


def _text(policy: str) -> str:
    # botocore wants a hundred characters; a short policy is padded with blanks, which JSON does not mind.
    return policy.ljust(100)


def _scanning(inputs: Inputs) -> dict[str, bool]:
    return {"scanOnPush": bool((inputs.get("imageScanningConfiguration") or {}).get("scanOnPush"))}


def _outputs(arn: str, url: str, inputs: Inputs) -> Outputs:
    return {
        **inputs,
        "name": arn.split("/", 1)[1],
        "arn": arn,
        "repositoryUrl": url,
        "registryId": arn.split(":")[4],
        "tagsAll": tags_of(inputs),
    }
