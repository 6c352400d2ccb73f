"""Tables as pandas.DataFrame."""


def to_pandas(table):
    """Return the table as pandas.DataFrame: columns of numbers share its memory, columns of names are categorical."""
    try:
        import numpy
        import pandas
    except ImportError as error:
        raise ImportError(f"{error}\nhint: to_pandas() needs pandas: pip install pandas") from None
    columns = {}
    for name in table.columns:
        values = numpy.asarray(table[name])
        categories = table.categories(name)
        if categories is None:
            columns[name] = values
        else:
            columns[name] = pandas.Categorical.from_codes(values, categories)
    return pandas.DataFrame(columns, copy=False)
