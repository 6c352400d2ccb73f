# PySide2.QtSql: the part that scripts for database exports use, with Python's sqlite3, or libpq for PostgreSQL.

__all__ = ["QSqlDatabase", "QSqlQuery", "QSqlError"]


class QSqlError(object):
    def __init__(self, text=""):
        self._text = text

    def text(self):
        return self._text


def _open_sqlite(name):
    import sqlite3

    return sqlite3.connect(name, isolation_level=None), sqlite3.Error


class PqError(Exception):
    pass


class _PqConnection(object):
    """A connection by libpq, which perf's script also calls; results are text."""

    COMMAND_OK, TUPLES_OK = 1, 2

    def __init__(self, name):
        import ctypes

        try:
            self.library = ctypes.CDLL("libpq.so.5")
        except OSError as error:
            raise ImportError("databases of PostgreSQL need the library libpq.so.5: %s" % error)
        pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
        for function, result, arguments in (
                ("connectdb", pointer, [text]), ("status", number, [pointer]), ("errorMessage", text, [pointer]),
                ("finish", None, [pointer]), ("exec", pointer, [pointer, text]), ("clear", None, [pointer]),
                ("resultStatus", number, [pointer]), ("resultErrorMessage", text, [pointer]),
                ("ntuples", number, [pointer]), ("nfields", number, [pointer]),
                ("getvalue", text, [pointer, number, number])):
            function = getattr(self.library, "PQ" + function)
            function.restype, function.argtypes = result, arguments
        quoted = name.replace("\\", "\\\\").replace("'", "\\'")
        self.handle = self.library.PQconnectdb(("dbname = '%s'" % quoted).encode())
        if self.library.PQstatus(self.handle):
            message = self.library.PQerrorMessage(self.handle).decode(errors="replace")
            self.close()
            raise PqError(message)

    def cursor(self):
        return _PqCursor(self)

    def close(self):
        if self.handle is not None:
            self.library.PQfinish(self.handle)
        self.handle = None


class _PqCursor(object):
    def __init__(self, connection):
        self.connection, self.rows, self.description = connection, iter(()), None

    def execute(self, text, values=()):
        if values:
            raise PqError("values cannot be bound to statements of PostgreSQL")
        library = self.connection.library
        result = library.PQexec(self.connection.handle, text.encode())
        try:
            status = library.PQresultStatus(result)
            if status not in (_PqConnection.COMMAND_OK, _PqConnection.TUPLES_OK):
                raise PqError(library.PQresultErrorMessage(result).decode(errors="replace"))
            columns = range(library.PQnfields(result))
            rows = [[library.PQgetvalue(result, row, column).decode(errors="replace") for column in columns]
                    for row in range(library.PQntuples(result))]
        finally:
            library.PQclear(result)
        self.description = columns if status == _PqConnection.TUPLES_OK else None
        self.rows = iter(rows)

    def fetchone(self):
        return next(self.rows, None)

    def close(self):
        self.rows = iter(())


def _open_postgresql(name):
    return _PqConnection(name), PqError


class QSqlDatabase(object):
    _drivers = {"QSQLITE": _open_sqlite, "QPSQL": _open_postgresql}

    def __init__(self, driver):
        if driver not in self._drivers:
            raise NotImplementedError("database driver %s: only QSQLITE and QPSQL are provided" % driver)
        self._driver, self._name, self._error = driver, "", QSqlError()
        self._connection = None

    @staticmethod
    def addDatabase(driver, name=None):
        return QSqlDatabase(driver)

    def setDatabaseName(self, name):
        self._name = name

    def open(self):
        try:
            self._connection, self._failure = self._drivers[self._driver](self._name)
        except ImportError:
            raise
        except Exception as error:
            self._error = QSqlError(str(error).strip())
            return False
        return True

    def isOpen(self):
        return self._connection is not None

    def close(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def lastError(self):
        return self._error


class QSqlQuery(object):
    def __init__(self, database):
        self._database, self._text, self._values = database, "", []
        self._cursor, self._row, self._error = None, None, QSqlError()

    def prepare(self, text):
        self._text = text
        return True

    def addBindValue(self, value):
        self._values.append(value)

    def exec_(self, text=None):
        database, values = self._database, self._values
        text, self._values = text or self._text, []
        if not database.isOpen():
            self._error = QSqlError(database.lastError().text() or "the database is not open")
            return False
        try:
            if self._cursor is None:
                self._cursor = database._connection.cursor()
            self._cursor.execute(text, values)
        except database._failure as error:
            self._error = QSqlError(str(error).strip())
            return False
        return True

    def next(self):
        self._row = None
        if self._cursor is not None and self._cursor.description is not None:
            self._row = self._cursor.fetchone()
        return self._row is not None

    def value(self, index):
        return self._row[index]

    def finish(self):
        self.clear()

    def clear(self):
        if self._cursor is not None:
            self._cursor.close()
        self._cursor, self._row, self._values = None, None, []

    def lastError(self):
        return self._error
