package plan

import "testing"

func TestParseStandby(t *testing.T) {
	for text, want := range map[string]Standby{
		"node4=https://10.0.0.4:2380":      {Name: "node4", URL: "https://10.0.0.4:2380"},
		"node2:node4=http://10.0.0.4:2380": {Name: "node4", URL: "http://10.0.0.4:2380", For: "node2"},
		"node4":                            {},
		"=http://10.0.0.4:2380":            {},
		":node4=http://10.0.0.4:2380":      {},
		"node4=10.0.0.4:2380":              {},
		"node4=ftp://10.0.0.4:2380":        {},
		"https://10.0.0.4:2380":            {},
		"node2:=http://10.0.0.4:2380":      {},
		"node4=http://":                    {},
		"node4=http://[::1]:2380":          {Name: "node4", URL: "http://[::1]:2380"},
	} {
		got, err := ParseStandby(text)
		if got != want || (err == nil) != (want != Standby{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
