"""`vfgnn keys`: a party's own key and certificate."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Make and show this party's key and certificate.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Make and show this party's key and certificate."""


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The party's name in the federation file.")],
    folder: Annotated[Path, typer.Option(help="Where both files go.")] = Path(),
    days: Annotated[int, typer.Option(help="How long the certificate is valid.", min=1, max=3650)] = 365,
    passphrase: Annotated[bool, typer.Option(help="Ask for a passphrase that encrypts the key on disk.")] = False,
) -> None:
    """Make a key and a certificate. The key stays here; the certificate goes into the federation file.

    Example: `vfgnn keys new bank --passphrase`
    """
    import re

    from vfgnn.errors import ConfigError
    from vfgnn.transport import certificates

    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        raise ConfigError("a name that cannot be used", expected="up to 64 letters, digits, '_', '.' or '-'", got=name)
    secret = typer.prompt("passphrase", hide_input=True, confirmation_prompt=True).encode() if passphrase else None
    key, certificate = certificates.write(folder, name, days=days, passphrase=secret)
    typer.echo(f"{key}\n    the private key: stays here, readable by you only")
    typer.echo(f"{certificate}\n    the certificate: give it to whoever writes the federation file")
    typer.echo(f"fingerprint (read it out to them): {certificates.fingerprint(certificates.load(certificate))}")


@app.command()
def show(certificate: Annotated[Path, typer.Argument(help="A certificate file, PEM.")]) -> None:
    """Show whose a certificate is, its fingerprint and how long it is valid.

    Example: `vfgnn keys show bank.certificate.pem`
    """
    from vfgnn.transport import certificates

    found = certificates.load(certificate)
    fault = certificates.fault_of_dates(found)
    issued = "itself" if found.issuer == found.subject else found.issuer.rfc4514_string()
    typer.echo(f"name         {certificates.name_of(found)}")
    typer.echo(f"fingerprint  {certificates.fingerprint(found)}")
    typer.echo(f"valid from   {found.not_valid_before_utc:%Y-%m-%d %H:%M} UTC")
    typer.echo(f"valid until  {found.not_valid_after_utc:%Y-%m-%d %H:%M} UTC{'' if fault is None else f' ({fault})'}")
    typer.echo(f"signed by    {issued}")
