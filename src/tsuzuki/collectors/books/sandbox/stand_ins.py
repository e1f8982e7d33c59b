"""The stand-ins that the books add to `tsuzuki sandbox`."""

from tsuzuki.sandbox.stand_in_kind import StandInKind

STAND_INS = (
    StandInKind(
        name="books",
        title="Google Books",
        usual_port=8930,
        start="tsuzuki.collectors.books.sandbox.google_books:start",
    ),
    StandInKind(
        name="mail",
        title="mail server",
        usual_port=8931,
        start="tsuzuki.collectors.books.sandbox.smtp:start",
        requirement="tsuzuki[sandbox]",
    ),
)
