// Package release is the one table of what etcd does differently from release to release (table*.go). It also has the
// version of a server as far as it is known. Code that predicts, checks or repairs uses it instead of comparing
// numbers. A data dir shows at best the minor version, and many rules changed between patch releases. So an answer is
// yes, no or unknown.
package release

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Release is one release of etcd 3, 3.Minor.Patch.
type Release struct{ Minor, Patch int }

// Before reports whether r is older than other.
func (r Release) Before(other Release) bool {
	return r.Minor < other.Minor || r.Minor == other.Minor && r.Patch < other.Patch
}

// String returns 3.5.12.
func (r Release) String() string { return fmt.Sprintf("3.%d.%d", r.Minor, r.Patch) }

// newest is above every release.
const newest = math.MaxInt

// Version is what is known about a server's release: any release from first to last is possible. The zero value is the
// unknown version.
type Version struct {
	first, last Release
	known       bool
}

// Exact returns the version of one release.
func Exact(minor, patch int) Version {
	return Version{Release{minor, patch}, Release{minor, patch}, true}
}

// AnyOf returns a minor version with an unknown patch release; 0 is the unknown version.
func AnyOf(minor int) Version {
	if minor <= 0 {
		return Version{}
	}
	return Version{Release{minor, 0}, Release{minor, newest}, true}
}

// NewestOf returns the newest release of a minor version, which has everything that any of its releases added.
func NewestOf(minor int) Version {
	return Version{Release{minor, newest}, Release{minor, newest}, true}
}

// Between returns any release from first to last, both included.
func Between(first, last Release) Version {
	if last.Before(first) {
		return Version{}
	}
	return Version{first, last, true}
}

var text = regexp.MustCompile(`^v?3\.(\d{1,4})(?:\.(\d{1,4}|x))?(?:[-+].*)?$`)

// Parse reads 3.5, 3.5.x, 3.5.12 and v3.5.12-rc.1 (which counts as 3.5.12). It returns an error for any other text.
func Parse(s string) (Version, error) {
	m := text.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("%q is not a version of etcd 3", s)
	}
	minor, err := strconv.Atoi(m[1])
	if err != nil {
		return Version{}, err
	}
	if m[2] == "" || m[2] == "x" {
		return Version{Release{minor, 0}, Release{minor, newest}, true}, nil
	}
	patch, err := strconv.Atoi(m[2])
	return Exact(minor, patch), err
}

// Of returns the version in a text, unknown if the text is not a version.
func Of(s string) Version {
	v, err := Parse(s)
	if err != nil {
		return Version{}
	}
	return v
}

// Known reports whether anything is known about the version.
func (v Version) Known() bool { return v.known }

// Minor returns the minor version; 0 if it is not known.
func (v Version) Minor() int {
	if !v.known || v.first.Minor != v.last.Minor {
		return 0
	}
	return v.first.Minor
}

// Newer returns the version with the newer minor, v if they are equal. The unknown version is older than any other.
func (v Version) Newer(w Version) Version {
	if w.Minor() > v.Minor() {
		return w
	}
	return v
}

// Patch returns the patch release; ok is false if it is not known.
func (v Version) Patch() (patch int, ok bool) {
	return v.first.Patch, v.known && v.first == v.last && v.first.Patch != newest
}

// String returns 3.5.12, 3.5.x, 3.5.3 - 3.5.12, or "unknown".
func (v Version) String() string {
	switch {
	case !v.known:
		return "unknown"
	case v.first == v.last && v.first.Patch == newest:
		return fmt.Sprintf("newest 3.%d", v.first.Minor)
	case v.first == v.last:
		return v.first.String()
	case v.first.Minor == v.last.Minor && v.first.Patch == 0 && v.last.Patch == newest:
		return fmt.Sprintf("3.%d.x", v.first.Minor)
	case v.last.Patch == newest:
		return fmt.Sprintf("%s - 3.%d.x", v.first, v.last.Minor)
	}
	return v.first.String() + " - " + v.last.String()
}

// bounds returns the first and last possible release.
func (v Version) bounds() (first, last Release) {
	if !v.known {
		return Release{0, 0}, Release{newest, newest}
	}
	return v.first, v.last
}

// Reach reports whether the version is first or newer.
func (v Version) Reach(first Release) Answer {
	return Spans{{From: first}}.Include(v)
}

// IsMinor reports whether the version is a release of a minor version.
func (v Version) IsMinor(minor int) Answer {
	return Spans{{From: Release{minor, 0}, Until: Release{minor + 1, 0}}}.Include(v)
}

// Oldest and Newest are the oldest and newest minor version whose rules this program knows.
const (
	Oldest = 3
	Newest = 8
)

// Lines are the texts of Minors, as 3.5.
func Lines() (lines []string) {
	for _, minor := range Minors() {
		lines = append(lines, fmt.Sprintf("3.%d", minor))
	}
	return lines
}

// Minors lists the minor versions whose rules this program knows, oldest first.
func Minors() (minors []int) {
	for n := Oldest; n <= Newest; n++ {
		minors = append(minors, n)
	}
	return minors
}

// Supported reports whether this program knows the rules of the version.
func (v Version) Supported() Answer {
	return Spans{{From: Release{Oldest, 0}, Until: Release{Newest + 1, 0}}}.Include(v)
}

// TooNew reports whether the version is certainly newer than those that this program knows.
func (v Version) TooNew() bool { return v.Reach(Release{Newest + 1, 0}).Certain() }

// TooOld reports whether the version is certainly older than those that this program knows.
func (v Version) TooOld() bool { return v.Reach(Release{Oldest, 0}).Excluded() }

// Above reports whether both minor versions are known, and that of v is higher.
func (v Version) Above(other Version) bool {
	return v.Minor() > other.Minor() && other.Minor() > 0
}

// Next returns the minor version after that of v, unknown if that is not known.
func (v Version) Next() Version {
	if v.Minor() == 0 {
		return Version{}
	}
	return AnyOf(v.Minor() + 1)
}

// Highest returns the version with the highest minor version, unknown if no minor version is known.
func Highest(versions ...Version) (highest Version) {
	for _, v := range versions {
		if v.Minor() > highest.Minor() {
			highest = v
		}
	}
	return highest
}

// Has reports whether a server of this version follows a rule.
func (v Version) Has(r *Rule) Answer { return r.In.Include(v) }

// Narrow keeps the possible releases that follow the rule as observed. If none does, ok is false and the version
// unchanged.
func (v Version) Narrow(r *Rule, follows bool) (narrowed Version, ok bool) {
	first, last := v.bounds()
	for _, p := range r.In.pieces(first, last) {
		if p.answer == Unknown || (p.answer == Yes) == follows {
			if !ok {
				narrowed = Version{p.first, p.last, true}
			}
			narrowed.last, ok = p.last, true
		}
	}
	if !ok {
		return v, false
	}
	if !v.known && narrowed.first == first && narrowed.last == last {
		return v, true
	}
	return narrowed, true
}

// Answer is yes, no, or unknown, as the table's answer for a version. In JSON it is true, false, or null.
type Answer int8

// The answers. Unknown also means that the possible releases differ.
const (
	Unknown Answer = iota
	No
	Yes
)

// AnswerOf returns yes for true and no for false.
func AnswerOf(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// MarshalJSON writes true, false, or null.
func (a Answer) MarshalJSON() ([]byte, error) {
	return []byte([...]string{"null", "false", "true"}[a]), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Answer) UnmarshalJSON(b []byte) error {
	var yes *bool
	if err := json.Unmarshal(b, &yes); err != nil {
		return err
	}
	if *a = Unknown; yes != nil {
		*a = AnswerOf(*yes)
	}
	return nil
}

// Certain reports whether the answer is yes.
func (a Answer) Certain() bool { return a == Yes }

// Possible reports whether the answer is yes or unknown.
func (a Answer) Possible() bool { return a != No }

// Excluded reports whether the answer is no.
func (a Answer) Excluded() bool { return a == No }

// Not turns yes into no and no into yes.
func (a Answer) Not() Answer {
	switch a {
	case Yes:
		return No
	case No:
		return Yes
	}
	return Unknown
}

// String returns yes, no or unknown.
func (a Answer) String() string { return [...]string{"unknown", "no", "yes"}[a] }
