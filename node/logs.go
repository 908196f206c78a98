package node

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// StartError says that a member's process ended before it served clients.
type StartError struct {
	Name string
	Exit Exit
	// Lines are the lines of the member's log about it: Fatal and panic lines, else the last lines.
	Lines []string
	// LogFile contains the whole log.
	LogFile string
}

// Error returns how the process ended and the first line about it.
func (e *StartError) Error() string {
	s := fmt.Sprintf("%s ended before it served: %s", e.Name, e.Exit)
	if len(e.Lines) > 0 {
		s += ": " + e.Lines[0]
	}
	return s
}

func (m *Member) startError() *StartError {
	e := &StartError{Name: m.config.Name, Exit: m.exit, LogFile: m.logFile}
	fatal, last := m.readLog()
	if e.Lines = fatal; len(fatal) == 0 {
		e.Lines = last
	}
	return e
}

// FatalLines returns the Fatal and panic lines of the member's log since its last start, shortened to message and
// error.
func (m *Member) FatalLines() []string {
	fatal, _ := m.readLog()
	return fatal
}

// keptLines bounds the lines kept of a log; lastLines is how many are shown if none is fatal.
const keptLines, lastLines = 20, 3

// readLog scans the log since the last start.
func (m *Member) readLog() (fatal, last []string) {
	f, err := os.Open(m.logFile)
	if err != nil {
		return nil, nil
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(m.logStart, io.SeekStart); err != nil {
		return nil, nil
	}
	return scanLog(f)
}

func scanLog(r io.Reader) (fatal, last []string) {
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(br)
		if text, grave := logLine(line); text != "" {
			if grave && len(fatal) < keptLines {
				fatal = append(fatal, text)
			}
			if last = append(last, text); len(last) > lastLines {
				last = last[1:]
			}
		}
		if err != nil {
			return fatal, last
		}
	}
}

// maxLine is how much of one line is read, in bytes.
const maxLine = 16 << 10

func readLine(br *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, more, err := br.ReadLine()
		if err != nil {
			return b.String(), err
		}
		if b.Len() < maxLine {
			b.Write(part[:min(len(part), maxLine-b.Len())])
		}
		if !more {
			return b.String(), nil
		}
	}
}

// logLine shortens a line of etcd's log and reports whether it is about the end of the process. Lines are JSON (zap,
// since 3.4), "DATE TIME.MICROSECONDS LEVEL | package: text" (capnslog, up to 3.4; C is critical) or Go's panic
// messages.
func logLine(line string) (text string, grave bool) {
	line = strings.TrimSpace(line)
	var z struct{ Level, Msg, Error string }
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &z) == nil && z.Msg != "" {
		text = z.Msg
		if z.Error != "" {
			text += ": " + z.Error
		}
		return text, z.Level == "fatal" || z.Level == "panic" || z.Level == "dpanic"
	}
	if _, after, ok := strings.Cut(line, " C | "); ok {
		return after, true
	}
	for _, p := range []string{"panic: ", "fatal error: ", "unexpected fault address", "[signal SIG", "SIGBUS",
		"flag provided but not defined"} {
		if strings.HasPrefix(line, p) {
			return line, true
		}
	}
	return line, false
}
