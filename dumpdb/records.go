package dumpdb

import (
	"errors"
	"hash/maphash"
	"slices"
)

// keyHash represents a user key in maps, with 128 bits so that two keys do not collide. Its seeds belong to this
// process, so it is never stored.
type keyHash [2]uint64

var keySeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func hashKey(k []byte) keyHash {
	return keyHash{maphash.Bytes(keySeeds[0], k), maphash.Bytes(keySeeds[1], k)}
}

// record is a row of bucket key without its bytes.
type record struct {
	key            keyHash
	rev            Rev
	create, mod    int64
	version, lease int64
	place          Place
	tombstone      bool
	filled         bool // more than the key is in the value
	unknown        bool // a field that no release writes is in the value
	empty          bool // the value is empty, as written by restore --bump-revision
}

// records is a portion that decodes rows of bucket key.
type records struct {
	recs []record
	// bad are the first rows that do not decode; moreBad counts the others.
	bad     []Violation
	moreBad int64
	bytes   int64
}

// add decodes one row; ok is false if it is not a record.
func (p *records) add(l *leaf, e elem) (r *record, ok bool) {
	p.bytes += int64(len(e.key) + len(e.value))
	rev, tombstone, err := parseRevKey(e.key)
	var kv KeyValue
	if verr := kv.decode(e.value); err == nil {
		err = verr
	}
	if err == nil && e.flags&flagBucket != 0 {
		err = errors.New("a bucket among the records")
	}
	if err != nil && len(p.bad) >= maxViolations {
		p.moreBad++
		return nil, false
	}
	if err != nil {
		p.bad = append(p.bad, Violation{Place: l.at(e), Rev: rev, Rule: RuleUndecodable, Key: slices.Clone(kv.Key),
			Expected: "a revision key and mvccpb.KeyValue", Observed: err.Error()})
		return nil, false
	}
	p.recs = append(p.recs, record{key: hashKey(kv.Key), rev: rev, create: kv.CreateRevision, mod: kv.ModRevision,
		version: kv.Version, lease: kv.Lease, place: l.at(e), tombstone: tombstone, empty: len(e.value) == 0,
		filled: kv.HoldsMore(), unknown: kv.Unknown != 0})
	return &p.recs[len(p.recs)-1], true
}

// joinErrs returns nil for no error, a single error unchanged, and several joined. Damage stays one list of [Damages].
func joinErrs(errs ...error) error {
	var damage Damages
	var other []error
	for _, err := range errs {
		if d, ok := err.(Damages); ok { //nolint:errorlint // a wrapped list keeps its text
			damage = append(damage, d...)
		} else if err != nil {
			other = append(other, err)
		}
	}
	if len(other) == 0 {
		return damagesOrNil(damage)
	}
	if len(damage) > 0 {
		other = append([]error{damage}, other...)
	}
	if len(other) == 1 {
		return other[0]
	}
	return errors.Join(other...)
}
