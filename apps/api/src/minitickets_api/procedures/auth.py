"""Who is who: accounts and sessions."""

from typing import Annotated

from pydantic import Field

from minitickets_api.procedures.call import Call
from minitickets_api.procedures.fields import Email, Name, NewPassword, TriedPassword
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import rate_limits
from minitickets_api.services.accounts import User
from minitickets_api.trpc.registry import Input, NoInput, Output, Registry


class Registration(Input):
    """``name`` is what mails and tickets call the person."""

    email: Email
    name: Name
    password: NewPassword


class Credentials(Input):
    """A wrong password and an unknown address are answered alike, so any text of 1 to 128 characters may be tried."""

    email: Email
    password: TriedPassword


class PasswordResetRequest(Input):
    """Whose password was forgotten."""

    email: Email


class PasswordReset(Input):
    """`token` is what the mail says."""

    token: Annotated[str, Field(min_length=1, max_length=128)]
    password: NewPassword


class Person(Output):
    """Who is signed in."""

    user_id: str
    email: str
    name: str
    is_organiser: bool


class SignedIn(Output):
    """The session's token is in the reply's cookie and nowhere else."""

    user: Person


class Whoever(Output):
    """``user`` is null when nobody is signed in."""

    user: Person | None


class Done(Output):
    """It is done, now or before."""


async def _sign_in(call: Call, user: User, *, password_hash: str) -> SignedIn:
    services = call.services
    token = await services.sessions.begin(
        user_id=user.user_id, password_hash=password_hash, replaces=call.session_token
    )
    call.set_cookie(services.cookie.set(token))
    return SignedIn(user=Person.model_validate(user))


async def register(call: Call, wanted: Registration) -> SignedIn:
    """Make an account and sign in.

    CONFLICT: the address has an account. TOO_MANY_REQUESTS: by address or account; `retryAfterSeconds` says when.
    """
    services = call.services
    await services.rate_limits.spend(
        (rate_limits.REGISTER_BY_ADDRESS, call.address), (rate_limits.REGISTER_BY_ACCOUNT, wanted.email)
    )
    password_hash = await services.passwords.hash(wanted.password)
    user = await services.accounts.create(email=wanted.email, name=wanted.name, password_hash=password_hash)
    return await _sign_in(call, user, password_hash=password_hash)


async def login(call: Call, wanted: Credentials) -> SignedIn:
    """Sign in; the session that the request came with ends.

    UNAUTHORIZED: address or password is wrong, and which of them is not told, not even by the time it takes.
    TOO_MANY_REQUESTS: by address or account; `retryAfterSeconds` says when.
    """
    services = call.services
    here = (rate_limits.LOGIN_BY_ACCOUNT_AND_ADDRESS, f"{wanted.email}\n{call.address}")
    await services.rate_limits.spend(
        (rate_limits.LOGIN_BY_ADDRESS, call.address), here, (rate_limits.LOGIN_BY_ACCOUNT, wanted.email)
    )
    account = await services.accounts.find(email=wanted.email)
    is_right = await services.passwords.is_right(wanted.password, account.password_hash if account else None)
    if account is None or not is_right:
        raise Refusal(Code.UNAUTHORIZED, "The address or the password is wrong.")
    await services.rate_limits.reset(*here)
    signed_in = await _sign_in(call, account.user, password_hash=account.password_hash)
    if services.passwords.is_outdated(account.password_hash):
        await services.accounts.replace_hash(
            user_id=account.user.user_id,
            old=account.password_hash,
            new=await services.passwords.hash(wanted.password),
        )
    return signed_in


async def logout(call: Call, _: NoInput) -> Done:
    """End the session that the request came with."""
    if token := call.session_token:
        await call.services.sessions.end(token)
    call.set_cookie(call.services.cookie.clear())
    return Done()


async def request_password_reset(call: Call, wanted: PasswordResetRequest) -> Done:
    """Have a link to set a new password mailed; it works once, within an hour.

    The same answer whether the address has an account or not. TOO_MANY_REQUESTS: by address or account;
    `retryAfterSeconds` says when.
    """
    services = call.services
    await services.rate_limits.spend(
        (rate_limits.RESET_BY_ADDRESS, call.address), (rate_limits.RESET_BY_ACCOUNT, wanted.email)
    )
    account = await services.accounts.find(email=wanted.email)
    await services.password_resets.request(
        email=wanted.email, account=account.user if account else None, correlation_id=call.correlation_id
    )
    return Done()


async def reset_password(call: Call, wanted: PasswordReset) -> Done:
    """Set a new password. All sessions of the account end, this browser's too: log in with the new one.

    BAD_REQUEST: the token was used, or is older than an hour (`reason` is `token`), or the password is none.
    TOO_MANY_REQUESTS: by address; `retryAfterSeconds` says when.
    """
    services = call.services
    await services.rate_limits.spend((rate_limits.RESET_BY_ADDRESS, call.address))
    await services.password_resets.use(
        token=wanted.token.strip(), password=wanted.password, passwords=services.passwords
    )
    call.set_cookie(services.cookie.clear())
    return Done()


async def me(call: Call, _: NoInput) -> Whoever:
    """Who is signed in."""
    user = await call.user()
    return Whoever(user=None if user is None else Person.model_validate(user))


def add_to(registry: Registry[Call]) -> None:
    """Register this module's procedures."""
    registry.mutation("auth.register", session=False)(register)
    registry.mutation("auth.login", session=False)(login)
    registry.mutation("auth.logout", session=False)(logout)
    registry.mutation("auth.requestPasswordReset", session=False)(request_password_reset)
    registry.mutation("auth.resetPassword", session=False)(reset_password)
    registry.query("auth.me", session=False)(me)
