package replay

import "slices"

// noteAuthRise notes an entry above an index that raises the auth revision by one at most: an auth entry, committed or
// not, or one that is an auth entry in one of the logs or may be, since it does not decode.
func (s *Survey) noteAuthRise(it *item, above uint64) {
	if it.entry.Index <= above {
		return
	}
	mayRaise := func(v *item) bool { return v.err != nil || v.req.Kind.ChangesAuth() }
	if mayRaise(it) || len(it.others) > 0 && slices.ContainsFunc(it.versions(), mayRaise) {
		s.AuthRises = append(s.AuthRises, it.entry.Index)
	}
}

// AuthRisesAfter counts the entries above an index that may raise the auth revision by one each, also those that no
// source shows to be committed. Entries up to the lowest applied index of all databases are not kept.
func (s *Survey) AuthRisesAfter(index uint64) int {
	at, found := slices.BinarySearch(s.AuthRises, index)
	if found {
		at++
	}
	return len(s.AuthRises) - at
}
