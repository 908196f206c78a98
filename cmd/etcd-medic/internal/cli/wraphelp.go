package cli

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// wrappedHelp wraps help to the width of the terminal. Without a known width the texts stay unchanged.
func (s *Streams) wrappedHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var b bytes.Buffer
		out := cmd.OutOrStdout()
		cmd.SetOut(&b)
		help(cmd, args)
		cmd.SetOut(out)
		shown := b.String()
		if s.Width > 0 {
			shown = wrapHelp(shown, max(s.Width, 40))
		}
		_, s.helpErr = io.WriteString(out, shown) // cobra drops it
	})
}

// described matches a flag or a command with its description; following lines are indented to the width of the part
// before it.
var described = regexp.MustCompile(`^ +\S.*? {2,}(\S)`)

// wrapHelp breaks long lines. It refills text that starts at the margin; other lines are kept.
func wrapHelp(help string, width int) string {
	var out, running []string
	flush := func() {
		if len(running) > 0 {
			out = append(out, strings.Split(text.WrapSoft(strings.Join(running, " "), width), "\n")...)
			running = nil
		}
	}
	for _, l := range strings.Split(strings.TrimRight(help, "\n"), "\n") {
		l = strings.TrimRight(l, " ")
		if l != "" && l[0] != ' ' {
			if running = append(running, l); strings.HasSuffix(l, ":") {
				flush()
			}
			continue
		}
		flush()
		out = append(out, hang(l, width)...)
	}
	flush()
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return strings.Join(out, "\n") + "\n"
}

// hang breaks an indented line; its following lines are below its text. Commands, which are copied, are not broken.
func hang(line string, width int) []string {
	if text.StringWidthWithoutEscSequences(line) <= width || strings.HasPrefix(strings.TrimSpace(line), "etcd-medic ") {
		return []string{line}
	}
	at := len(line) - len(strings.TrimLeft(line, " "))
	if m := described.FindStringSubmatchIndex(line); m != nil && m[2] < width-20 {
		at = m[2]
	}
	if at > width-20 {
		return []string{line}
	}
	parts := strings.Split(text.WrapSoft(line[at:], width-at), "\n")
	for i := range parts {
		if parts[i] = strings.Repeat(" ", at) + parts[i]; i == 0 {
			parts[i] = line[:at] + parts[i][at:]
		}
	}
	return parts
}
