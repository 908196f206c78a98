package dumpdb

import "testing"

// TestLostRevisions: the keys of the parent page say which revisions a damaged page of bucket key had.
func TestLostRevisions(t *testing.T) {
	first, last := Rev{42, 1}, Rev{43, 0}
	one := append(first.Bytes(), 0) // the span of one row
	for _, c := range []struct {
		d        DamageError
		from, to Rev
	}{
		{DamageError{FirstKey: first.Bytes(), LastKey: last.Bytes()}, first, last},
		{DamageError{FirstKey: append(first.Bytes(), 't')}, first, Rev{}},
		{DamageError{LastKey: one}, Rev{}, first},
		{DamageError{FirstKey: []byte("members"), LastKey: []byte("a name of at least 17 bytes")}, Rev{}, Rev{}},
	} {
		if from, to := c.d.Revisions(); from != c.from || to != c.to {
			t.Errorf("%x..%x: %s to %s", c.d.FirstKey, c.d.LastKey, from, to)
		}
	}
}
