package dumpdb

import (
	"bytes"
	"slices"
)

// positiveVersion is what every put must have, whatever came before it. So lost records do not excuse a lower version.
const positiveVersion = "a version of 1 or more"

// tolerate drops the violations that damage explains. These are gaps whose records cannot be read, and conflicts with
// earlier records, some of which may be lost. Such invariants could not be checked; the damage is reported instead.
func (st *KVStats) tolerate(damage []*DamageError) *KVStats {
	lost := slices.Clone(damage)
	for _, v := range st.Violations {
		if v.Rule == RuleUndecodable && v.Rev != (Rev{}) {
			sp := only(v.Rev.Bytes())
			lost = append(lost, &DamageError{FirstKey: sp.first, LastKey: sp.end})
		}
	}
	if len(lost) > 0 {
		st.Violations = slices.DeleteFunc(st.Violations, func(v Violation) bool { return v.explainedBy(lost) })
	}
	return st
}

func (v *Violation) explainedBy(lost []*DamageError) bool {
	switch v.Rule {
	case "contiguous-main", RuleContiguousSub:
		want, err := ParseRev(v.Expected)
		return err == nil && slices.ContainsFunc(lost, func(d *DamageError) bool { return d.covers(want.Bytes()) })
	case "version-chain", "tombstone-without-life":
		key := v.Rev.Bytes()
		return v.Expected != positiveVersion &&
			slices.ContainsFunc(lost, func(d *DamageError) bool { return bytes.Compare(d.FirstKey, key) < 0 })
	}
	return false
}
