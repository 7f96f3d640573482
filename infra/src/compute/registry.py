"""Where the API's images are kept."""

import pulumi_aws as aws

from src.policies import compact_json

IMAGES_KEPT = 20  # enough to roll back for weeks; storage is paid by the gigabyte


def create_image_repository(name: str, *, force_destroy: bool) -> aws.ecr.Repository:
    """The repository ``…-api``: a tag never moves, images are scanned when pushed, and the newest 20 are kept.

    ``force_destroy`` lets a stage be destroyed with images in it.
    """
    repository = aws.ecr.Repository(
        "api",
        name=f"{name}-api",
        image_tag_mutability="IMMUTABLE",
        image_scanning_configuration={"scan_on_push": True},
        encryption_configurations=[{"encryption_type": "AES256"}],
        force_delete=force_destroy,
    )
    aws.ecr.LifecyclePolicy(
        "api",
        repository=repository.name,
        policy=compact_json(
            {
                "rules": [
                    {
                        "rulePriority": 1,
                        "description": f"keep the newest {IMAGES_KEPT}",
                        "selection": {
                            "tagStatus": "any",
                            "countType": "imageCountMoreThan",
                            "countNumber": IMAGES_KEPT,
                        },
                        "action": {"type": "expire"},
                    }
                ]
            }
        ),
    )
    return repository
