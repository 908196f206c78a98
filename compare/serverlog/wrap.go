package serverlog

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// journaldBlock unwraps lines. For an export of journald it remembers the time that comes before the message.
type journaldBlock struct{ at time.Time }

var exportField = regexp.MustCompile(`^_?_?[A-Z][A-Z0-9_]*=`)

// unwrap returns the line of the server and the time from its wrapper, zero for none.
func (b *journaldBlock) unwrap(line string) (string, time.Time) {
	switch {
	case strings.HasPrefix(line, "__REALTIME_TIMESTAMP="):
		b.at = micros(line[len("__REALTIME_TIMESTAMP="):])
		return "", time.Time{}
	case strings.HasPrefix(line, "MESSAGE="):
		return line[len("MESSAGE="):], b.at
	case exportField.MatchString(line) && !strings.HasPrefix(line, "ETCD_"):
		return "", time.Time{}
	case strings.HasPrefix(line, "{"):
		return carried(line)
	}
	return stamped(line)
}

// carried unwraps a line in JSON of journald (-o json) or of a container runtime. It returns a line of a server
// unchanged.
func carried(line string) (string, time.Time) {
	if !strings.Contains(line, `"MESSAGE"`) && !strings.Contains(line, `"stream"`) {
		return line, time.Time{}
	}
	var j struct {
		Realtime string `json:"__REALTIME_TIMESTAMP"`
		Message  any    `json:"MESSAGE"`
		Log      string `json:"log"`
		Time     string `json:"time"`
	}
	if json.Unmarshal([]byte(line), &j) != nil {
		return line, time.Time{}
	}
	if s, ok := message(j.Message); ok {
		return s, micros(j.Realtime)
	}
	if j.Log != "" {
		t, _ := parseTime(j.Time)
		return strings.TrimRight(j.Log, "\n"), t
	}
	return line, time.Time{}
}

// message returns the text of a field of journald, which writes a text with a tab or another control character as a
// list of its bytes.
func message(field any) (string, bool) {
	list, ok := field.([]any)
	if !ok {
		s, ok := field.(string)
		return s, ok
	}
	out := make([]byte, 0, len(list))
	for _, x := range list {
		n, ok := x.(float64)
		if !ok || n < 0 || n > 255 {
			return "", false
		}
		out = append(out, byte(n))
	}
	return string(out), true
}

// stamped removes the time that kubectl logs --timestamps and container runtimes put before a line, and the runtimes'
// stream name.
func stamped(line string) (string, time.Time) {
	head, rest, ok := strings.Cut(line, " ")
	if !ok || len(head) < 20 || head[4] != '-' || !strings.Contains(head, "T") {
		return line, time.Time{}
	}
	t, ok := parseTime(head)
	if !ok {
		return line, time.Time{}
	}
	for _, stream := range []string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
		rest = strings.TrimPrefix(rest, stream)
	}
	return rest, t
}

func micros(s string) time.Time {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

var (
	jsonStamp = regexp.MustCompile(`"ts":"([^"]{10,40})"`)
	numStamp  = regexp.MustCompile(`"ts":(\d{9,11}(?:\.\d+)?)`)
	// plainStamp is the time stamp of 3.3 and of 3.4 without zap. It has no zone and is read as UTC.
	plainStamp = regexp.MustCompile(`(?:^|\s)(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) [A-Z] \| `)
)

// timeOf returns the time that the server itself wrote into a line.
func timeOf(line string) (time.Time, bool) {
	if m := jsonStamp.FindStringSubmatch(line); m != nil {
		return parseTime(m[1])
	}
	if m := numStamp.FindStringSubmatch(line); m != nil {
		f, err := strconv.ParseFloat(m[1], 64)
		return time.UnixMicro(int64(f * 1e6)).UTC(), err == nil
	}
	if m := plainStamp.FindStringSubmatch(line); m != nil {
		t, err := time.Parse("2006-01-02 15:04:05.999999", m[1])
		return t, err == nil
	}
	return time.Time{}, false
}

func parseTime(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
