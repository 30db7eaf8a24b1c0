"""Wrong answers to the exercises of chapter 1, and what the check has to say about each."""

wrong = {
    'hypot_rules': [
        # no root
        ('np.hypot(x, y)', 'x * x + y * y', 'hypot of 3 and 4 should be 5'),
        # only one operand decides
        ('x.weak_type and y.weak_type', 'y.weak_type', 'one strongly typed operand should be enough'),
        ('x.weak_type and y.weak_type', 'False', 'weakly typed'),
        # a shape in place of an aval
        ('x.update(weak_type=x.weak_type and y.weak_type)', 'x.shape', 'should return an aval'),
    ],
    'Tally': [
        # only the first time
        ('self.tally.get(primitive.name, 0) + 1', '1', 'mul should be 2'),
        # the answer is kept back
        ('return self.ask_parent', 'self.ask_parent', 'values should be those of the parent'),
        # does the work itself, and the parent hears nothing
        ('return self.ask_parent(primitive, args, params)',
         'return eval_trace.process_primitive(primitive, args, params)', 'parent should have been asked'),
    ],
    'Shapes': [
        # forgets the params
        ('*types, **params', '*types', 'axes|params'),
        # constants are no avals
        ('a if isinstance(a, ShapedArray) else avals.typeof(a)', 'a', 'float|aval'),
        # the type of the first operand is not that of every result
        ('''class Shapes(Trace):
    def process_primitive(self, primitive, args, params):
        return next(a for a in args if isinstance(a, ShapedArray))
''', 'axis 0 is summed'),
    ],
    'NanHunter': [
        # accuses whoever passes a NaN on
        (' and not any(map(has_nan, args))', '', 'no crime of the sine|sin of'),
        # does not say of what
        (' of {args}', '', 'the message should show the operand'),
        ('{primitive} of', 'something of', 'the message should name the primitive'),
        ('has_nan(out)', 'False', 'the message should name the primitive'),
    ],
    'IntervalTrace': [
        ('IntervalTracer(self, -b, -a)', 'IntervalTracer(self, -a, -b)', 'negation should swap the ends'),
        # the ends alone
        ('min(products), max(products)', 'a * c, b * d', r'should be \[-2, 4\]'),
        # any tracer is taken for one's own, and a constant for nothing
        ('else (x, x)', 'else (0.0, 0.0)', 'interval of width zero'),
        # sin as if it were monotone
        ('raise NotImplementedError(f"no interval rule for {primitive}")',
         'return IntervalTracer(self, np.sin(a), np.sin(b))', 'sin is not monotone'),
    ],
}
