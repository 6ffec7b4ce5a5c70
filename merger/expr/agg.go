package expr

// IsAggregate reports whether a name is an aggregate function's.
func IsAggregate(name string) bool { return false }

// AggregateNames returns the names of the aggregate functions.
func AggregateNames() []string { return nil }
