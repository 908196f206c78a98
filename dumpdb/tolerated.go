package dumpdb

import (
	"bytes"
	"slices"
)

// positiveVersion is what a record breaks by itself, whatever is lost before it.
const positiveVersion = "a version of 1 or more"

// excused drops what damage explains: a hole whose records cannot be read, and a break between a record and what came
// before it where damage may have taken that. Such truths could not be checked; the damage says so.
func (st *KVStats) excused(damage []*DamageError) *KVStats {
	lost := slices.Clone(damage)
	for _, v := range st.Violations {
		if v.Rule == "undecodable" && v.Rev != (Rev{}) {
			sp := only(v.Rev.Bytes())
			lost = append(lost, &DamageError{FirstKey: sp.first, LastKey: sp.end})
		}
	}
	if len(lost) > 0 {
		st.Violations = slices.DeleteFunc(st.Violations, func(v Violation) bool { return v.excusedBy(lost) })
	}
	return st
}

func (v *Violation) excusedBy(lost []*DamageError) bool {
	switch v.Rule {
	case "contiguous-main", "contiguous-sub":
		want, err := ParseRev(v.Expected)
		return err == nil && slices.ContainsFunc(lost, func(d *DamageError) bool { return d.covers(want.Bytes()) })
	case "version-chain", "tombstone-without-life":
		key := v.Rev.Bytes()
		return v.Expected != positiveVersion &&
			slices.ContainsFunc(lost, func(d *DamageError) bool { return bytes.Compare(d.FirstKey, key) < 0 })
	}
	return false
}
