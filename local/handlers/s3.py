"""S3: buckets, and the settings that are resources of their own."""

from typing import Any, ClassVar

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.policies import as_this_machine_needs
from local.handlers.refusals import found, gone
from local.handlers.shapes import capitalised, physical_name, tag_list, tags_of
from local.widenings import Kind


class Bucket(Handler):
    """A bucket. Its name is refused while it is in use; deleting refuses while it holds an object or a version."""

    resource_type = "aws:s3/bucket:Bucket"
    replaced_by = frozenset({"bucket", "bucketPrefix", "objectLockEnabled"})

    def create(self, name: str, inputs: Inputs) -> Made:
        s3 = self.platform.aws("s3")
        bucket = physical_name(inputs, name, key="bucket", limit=63)
        # In us-east-1 S3 itself answers the second CreateBucket of an owner with success; the provider looks first.
        if found(lambda: s3.head_bucket(Bucket=bucket)) is not None:
            raise HandlerError(f"BucketAlreadyExists: the bucket {bucket} exists already")
        region = self.platform.region
        elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region != "us-east-1" else {}
        s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=bool(inputs.get("objectLockEnabled")), **elsewhere)
        self._tag(bucket, {}, inputs)
        return Made(bucket, self._outputs(bucket, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        bucket = id or inputs.get("bucket")
        if not bucket or found(lambda: self.platform.aws("s3").head_bucket(Bucket=bucket)) is None:
            return None
        return Made(bucket, self._outputs(bucket, inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._tag(id, old, new)
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        s3 = self.platform.aws("s3")
        if outputs.get("forceDestroy") and found(lambda: s3.head_bucket(Bucket=id)) is not None:
            self._empty(id)
        gone(lambda: s3.delete_bucket(Bucket=id))

    def _empty(self, bucket: str) -> None:
        s3 = self.platform.aws("s3")
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            for entry in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
                s3.delete_object(Bucket=bucket, Key=entry["Key"], VersionId=entry["VersionId"])
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for entry in page.get("Contents", []):
                s3.delete_object(Bucket=bucket, Key=entry["Key"])

    def _tag(self, bucket: str, old: Inputs, new: Inputs) -> None:
        s3 = self.platform.aws("s3")
        if tags := tag_list(new):
            s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
        elif tags_of(old):
            s3.delete_bucket_tagging(Bucket=bucket)

    def _outputs(self, bucket: str, inputs: Inputs) -> Outputs:
        region = self.platform.region
        return {
            **inputs,
            "bucket": bucket,
            "arn": f"arn:aws:s3:::{bucket}",
            "bucketDomainName": f"{bucket}.s3.amazonaws.com",
            "bucketRegionalDomainName": f"{bucket}.s3.{region}.amazonaws.com",
            "bucketRegion": region,
            "tagsAll": tags_of(inputs),
        }


_BUCKET_OR_OWNER = frozenset({"bucket", "expectedBucketOwner"})


class BucketSetting(Handler):
    """One setting of a bucket, by the three calls that S3 has for it. Its id is the bucket's name."""

    replaced_by = frozenset({"bucket"})
    getter: ClassVar[str]
    putter: ClassVar[str]
    remover: ClassVar[str]

    def request(self, inputs: Inputs) -> dict[str, Any]:
        """Arguments of the put, but the bucket. Empty: there is nothing to put, so the setting is removed."""
        raise NotImplementedError

    def create(self, name: str, inputs: Inputs) -> Made:
        self._put(inputs["bucket"], inputs)
        return Made(inputs["bucket"], dict(inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        bucket = id or inputs["bucket"]
        get = getattr(self.platform.aws("s3"), self.getter)
        return Made(bucket, dict(inputs)) if found(lambda: get(Bucket=bucket)) is not None else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._put(id, new)
        return dict(new)

    def delete(self, id: str, outputs: Outputs) -> None:
        remove = getattr(self.platform.aws("s3"), self.remover)
        gone(lambda: remove(Bucket=id))

    def _put(self, bucket: str, inputs: Inputs) -> None:
        if request := self.request(inputs):
            getattr(self.platform.aws("s3"), self.putter)(Bucket=bucket, **request)
        else:
            self.delete(bucket, {})


class BucketPublicAccessBlock(BucketSetting):
    resource_type = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
    getter, putter, remover = "get_public_access_block", "put_public_access_block", "delete_public_access_block"

    def request(self, inputs: Inputs) -> dict[str, Any]:
        keys = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
        return {"PublicAccessBlockConfiguration": {key[0].upper() + key[1:]: bool(inputs.get(key)) for key in keys}}


class BucketServerSideEncryption(BucketSetting):
    resource_type = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    replaced_by = _BUCKET_OR_OWNER
    getter, putter, remover = "get_bucket_encryption", "put_bucket_encryption", "delete_bucket_encryption"

    def request(self, inputs: Inputs) -> dict[str, Any]:
        rules = []
        for rule in inputs["rules"]:
            chosen = rule.get("applyServerSideEncryptionByDefault") or {}
            default = {"SSEAlgorithm": chosen.get("sseAlgorithm")}
            if chosen.get("kmsMasterKeyId"):
                default["KMSMasterKeyID"] = chosen["kmsMasterKeyId"]
            rules.append(
                {
                    "ApplyServerSideEncryptionByDefault": default,
                    "BucketKeyEnabled": bool(rule.get("bucketKeyEnabled")),
                }
            )
        return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


class BucketOwnershipControls(BucketSetting):
    resource_type = "aws:s3/bucketOwnershipControls:BucketOwnershipControls"
    getter, putter = "get_bucket_ownership_controls", "put_bucket_ownership_controls"
    remover = "delete_bucket_ownership_controls"

    def request(self, inputs: Inputs) -> dict[str, Any]:
        return {"OwnershipControls": {"Rules": [{"ObjectOwnership": inputs["rule"]["objectOwnership"]}]}}


class BucketPolicy(BucketSetting):
    resource_type = "aws:s3/bucketPolicy:BucketPolicy"
    getter, putter, remover = "get_bucket_policy", "put_bucket_policy", "delete_bucket_policy"

    def request(self, inputs: Inputs) -> dict[str, Any]:
        document = as_this_machine_needs(
            self.platform, inputs["policy"], kind=Kind.RESOURCE, owner=f"bucket {inputs['bucket']}"
        )
        return {"Policy": document} if document else {}

    def read(self, id: str, inputs: Inputs) -> Made | None:
        # Widened to nothing, the policy has no trace in the emulator: the bucket stands for it.
        bucket = id or inputs["bucket"]
        exists = found(lambda: self.platform.aws("s3").head_bucket(Bucket=bucket)) is not None
        return Made(bucket, dict(inputs)) if exists and (id or super().read("", inputs)) else None


class BucketVersioning(BucketSetting):
    """S3 has no call that takes versioning back: it is suspended, as the provider does."""

    resource_type = "aws:s3/bucketVersioning:BucketVersioning"
    replaced_by = _BUCKET_OR_OWNER
    getter, putter = "get_bucket_versioning", "put_bucket_versioning"

    def request(self, inputs: Inputs) -> dict[str, Any]:
        return {"VersioningConfiguration": {"Status": inputs["versioningConfiguration"]["status"]}}

    def delete(self, id: str, outputs: Outputs) -> None:
        s3 = self.platform.aws("s3")
        gone(lambda: s3.put_bucket_versioning(Bucket=id, VersioningConfiguration={"Status": "Suspended"}))


class BucketCors(BucketSetting):
    resource_type = "aws:s3/bucketCorsConfiguration:BucketCorsConfiguration"
    replaced_by = _BUCKET_OR_OWNER
    getter, putter, remover = "get_bucket_cors", "put_bucket_cors", "delete_bucket_cors"

    def request(self, inputs: Inputs) -> dict[str, Any]:
        rules = [
            {("ID" if key == "Id" else key): value for key, value in capitalised(rule).items()}
            for rule in inputs["corsRules"]
        ]
        return {"CORSConfiguration": {"CORSRules": rules}}


class BucketLifecycle(BucketSetting):
    resource_type = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    replaced_by = _BUCKET_OR_OWNER
    getter, putter = "get_bucket_lifecycle_configuration", "put_bucket_lifecycle_configuration"
    remover = "delete_bucket_lifecycle"

    def request(self, inputs: Inputs) -> dict[str, Any]:
        return {"LifecycleConfiguration": {"Rules": [_lifecycle_rule(rule) for rule in inputs["rules"]]}}


def _lifecycle_rule(rule: Inputs) -> dict[str, Any]:
    written: dict[str, Any] = capitalised(rule)
    written["ID"] = written.pop("Id")
    # Without a filter a rule is for all objects.
    written["Filter"] = {key: value for key, value in (written.get("Filter") or {}).items() if value} or {"Prefix": ""}
    return written
