package check

import "slices"

// StatedBy tells whether the check may state the kind.
func (k Kind) StatedBy(id ID) bool {
	return slices.ContainsFunc(kinds, func(row kindRow) bool {
		return row.kind == k && slices.Contains(row.checks, id)
	})
}

// EachKind calls f for every row of the table of kinds.
func EachKind(f func(k Kind, checks []ID, states string)) {
	for _, row := range kinds {
		f(row.kind, row.checks, row.states)
	}
}
