package dumplog

import (
	"fmt"
	"slices"
	"testing"
)

// TestV2Events: a node holds what the event with its modified index wrote.
func TestV2Events(t *testing.T) {
	const members = `{"a1":{"Children":{"attributes":{"Value":"%s","ModifiedIndex":6},` +
		`"raftAttributes":{"Value":"{\"peerURLs\":[\"p\"]}","ModifiedIndex":1}}},"x":{"Children":{}}}`
	const version = `"version":{"Value":"3.4.0","ModifiedIndex":3}`
	event := func(key, value string, index int) string {
		return fmt.Sprintf(`{"action":"set","node":{"key":"/0/%s","value":%q,"modifiedIndex":%d}}`, key, value, index)
	}
	for name, c := range map[string]struct {
		events    string
		inHistory int
		altered   []string
	}{
		"no history": {},
		"all as written": {event("members/a1/attributes", "{}", 6) + "," + event("version", "3.4.0", 3) + ",null", 2,
			nil},
		"another value":  {event("members/a1/attributes", `{"name":"n"}`, 6), 1, []string{"/0/members/a1/attributes"}},
		"an older event": {event("members/a1/attributes", `{"name":"n"}`, 5), 0, nil},
		"both, and the version": {event("version", "3.3.0", 3) + "," + event("members/a1/raftAttributes", "{}", 1), 2,
			[]string{"/0/members/a1/raftAttributes", "/0/version"}},
		"an event of another form": {`{"node":{"key":"/0/version","value":7,"modifiedIndex":3}}`, 0, nil},
		"another key":              {event("members/b1/attributes", `{"name":"n"}`, 6), 0, nil},
		"without a value":          {`{"action":"delete","node":{"key":"/0/version","modifiedIndex":3}}`, 0, nil},
	} {
		store := `{"Root":{"Children":{"0":{"Children":{"members":{"Children":` + fmt.Sprintf(members, "{}") + `},` +
			version + `}}}},"WatcherHub":{"EventHistory":{"Queue":{"Events":[` + c.events + `]}}}}`
		v, err := decodeV2Store([]byte(store), newV2Room(100)) // "x" is no member ID
		if len(v.Members) != 2 || v.Version != "3.4.0" || err == nil {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		var altered []string
		for _, a := range v.Altered {
			altered = append(altered, a.Path)
			if a.Value == a.Written || a.Index == 0 {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if v.InHistory != c.inHistory || !slices.Equal(altered, c.altered) {
			t.Errorf("%s: %d in the history, altered %q", name, v.InHistory, altered)
		}
	}
	long := fmt.Sprintf(`{"Root":{"Children":{"0":{"Children":{"version":{"Value":"%0*d","ModifiedIndex":3}}}}},`+
		`"WatcherHub":{"EventHistory":{"Queue":{"Events":[%s]}}}}`, 8*nodeBytes, 7, event("version", "3.3.0", 3))
	if v, err := decodeV2Store([]byte(long), newV2Room(8)); err == nil || len(v.Altered) > 0 {
		t.Errorf("a long value: %v, %+v", err, v)
	}
}
