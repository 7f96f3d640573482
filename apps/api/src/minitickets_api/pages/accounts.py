"""Pages of accounts: register, log in, log out, a forgotten password."""

from starlette.responses import Response

from minitickets_api.pages.forms import Form, read_input
from minitickets_api.pages.return_path import account_path, return_path
from minitickets_api.pages.site import Site
from minitickets_api.pages.visit import Visit
from minitickets_api.procedures import auth
from minitickets_api.refusals import Refusal
from minitickets_api.services.passwords import MIN_CHARACTERS
from minitickets_api.trpc.registry import NoInput

# What a browser keeps of somebody who has gone: the offline tickets, the seats they were choosing.
_FORGET = {"clear-site-data": '"storage"'}


async def register_form(visit: Visit) -> Response:
    if await visit.call.user():
        return visit.go(return_path(visit.query("next")))
    return await _register_page(visit, Form(), next_=visit.query("next"))


async def register(visit: Visit) -> Response:
    form = await visit.form()
    given = {name: form.text(name) for name in ("email", "name", "password")}
    try:
        await auth.register(visit.call, read_input(auth.Registration, given))
    except Refusal as reason:
        return await _register_page(
            visit, form.refused(reason, fields=list(given)), next_=form.text("next"), why=reason
        )
    return visit.go(return_path(form.text("next")))


async def login_form(visit: Visit) -> Response:
    if await visit.call.user():
        return visit.go(return_path(visit.query("next")))
    return await _login_page(visit, Form(), next_=visit.query("next"))


async def login(visit: Visit) -> Response:
    form = await visit.form()
    given = {name: form.text(name) for name in ("email", "password")}
    try:
        await auth.login(visit.call, read_input(auth.Credentials, given))
    except Refusal as reason:
        return await _login_page(visit, form.refused(reason, fields=list(given)), next_=form.text("next"), why=reason)
    return visit.go(return_path(form.text("next")))


async def logout_form(visit: Visit) -> Response:
    return await visit.page("logout.html")


async def logout(visit: Visit) -> Response:
    await auth.logout(visit.call, NoInput())
    response = visit.go("/login", notice="logged-out")
    response.headers.update(_FORGET)
    return response


async def forgot_password_form(visit: Visit) -> Response:
    return await visit.page("forgot_password.html", section="login", form=Form())


async def forgot_password(visit: Visit) -> Response:
    form = await visit.form()
    try:
        wanted = read_input(auth.PasswordResetRequest, {"email": form.text("email")})
        await auth.request_password_reset(visit.call, wanted)
    except Refusal as reason:
        told = form.refused(reason, fields=["email"])
        return await visit.page("forgot_password.html", section="login", refusal=reason, form=told)
    return visit.go("/forgot-password", notice="asked")


async def reset_password_form(visit: Visit) -> Response:
    return await _reset_page(visit, Form(), token=visit.query("token"))


async def reset_password(visit: Visit) -> Response:
    form = await visit.form()
    given = {name: form.text(name).strip() if name == "token" else form.text(name) for name in ("token", "password")}
    try:
        await auth.reset_password(visit.call, read_input(auth.PasswordReset, given))
    except Refusal as reason:
        return await _reset_page(visit, form.refused(reason, fields=list(given)), token=given["token"], why=reason)
    return visit.go("/login", notice="password-changed")


async def _register_page(visit: Visit, form: Form, *, next_: str, why: Refusal | None = None) -> Response:
    path = return_path(next_)
    return await visit.page(
        "register.html",
        section="register",
        refusal=why,
        form=form,
        next=path,
        login_path=account_path("/login", path),
        min_password=MIN_CHARACTERS,
    )


async def _login_page(visit: Visit, form: Form, *, next_: str, why: Refusal | None = None) -> Response:
    path = return_path(next_)
    return await visit.page(
        "login.html",
        section="login",
        refusal=why,
        form=form,
        next=path,
        register_path=account_path("/register", path),
    )


async def _reset_page(visit: Visit, form: Form, *, token: str, why: Refusal | None = None) -> Response:
    return await visit.page(
        "reset_password.html",
        section="login",
        refusal=why,
        is_secret=True,
        form=form,
        token=token,
        min_password=MIN_CHARACTERS,
    )


def add_to(site: Site) -> None:
    """Register this module's pages."""
    site.get("/register")(register_form)
    site.post("/register")(register)
    site.get("/login")(login_form)
    site.post("/login")(login)
    site.get("/logout")(logout_form)
    site.post("/logout")(logout)
    site.get("/forgot-password")(forgot_password_form)
    site.post("/forgot-password")(forgot_password)
    site.get("/reset-password")(reset_password_form)
    site.post("/reset-password")(reset_password)
