package plan

import (
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/shell"
)

// A server with --wal-dir has its log outside of the data dir. Commands that read the log must name it, and where the
// data dir is moved or replaced the log must be too: a server takes its member ID from the log, and an old log next to
// a new database hides from the server which entries the database has.

// logApart is the input of a source whose log is outside of its data dir, nil if the log is inside.
func (p *Plan) logApart(source string) *Input {
	for i := range p.Inputs {
		if in := &p.Inputs[i]; in.WALDir != "" && source != "" && (in.Name == source || in.Name == "") {
			return in
		}
	}
	return nil
}

// argument names the input in a command.
func (in *Input) argument() string {
	if in.Name == "" {
		return shell.Operand(in.Where)
	}
	return in.Name + "=" + in.Where
}

// logFlag names the log that is outside of the data dir; it is empty for nil and for other inputs.
func (in *Input) logFlag() shell.Command {
	switch {
	case in == nil || in.WALDir == "":
		return shell.Command{}
	case in.Name == "":
		return shell.Command{}.With("--wal-dir", in.WALDir)
	}
	return shell.Command{}.With("--wal-dir", in.Name+"="+in.WALDir)
}

// named are the sources as commands name them. The report names none whose log is outside: that takes a flag besides.
func (ro *roster) named() []compare.Source {
	out := make([]compare.Source, len(ro.r.Sources))
	for i, src := range ro.r.Sources {
		if in := ro.p.logApart(src.Name); in != nil && src.Where == "" {
			src.Where = in.argument()
		}
		out[i] = src
	}
	return out
}

// at puts the paths of sources into a command of the report, and the flags for logs that are outside.
func (ro *roster) at(cmd shell.Command) shell.Command {
	places, flags := map[string]string{}, shell.Command{}
	for _, src := range ro.named() {
		places[src.Name] = place(src)
		if !cmd.At(map[string]string{src.Name: place(src)}).Equal(cmd) {
			flags = flags.Then(ro.p.logApart(src.Name).logFlag())
		}
	}
	return cmd.At(places).Then(flags)
}

// dumpEntries is the command that writes entries of a source's log to a file.
func (ro *roster) dumpEntries(src compare.Source, from, to uint64) shell.Command {
	return shell.Format("etcd-medic dumplog --index {}..{} --values -w jsonl", from, to).Then(
		ro.p.logApart(src.Name).logFlag()).Then(shell.Format("-- {}", place(src)))
}

// moveAside renames the data dir of a member, and its log where that is outside.
func (p *Plan) moveAside(m *Member) shell.Command {
	if p.logApart(m.Source) == nil {
		return setAside
	}
	return setAside.Then(shell.Format("&& mv -T <WAL_DIR> <WAL_DIR>.before-repair"))
}

// logInPlace moves the log of a new data dir to where the server looks for it; it is empty where that is the data dir.
func (p *Plan) logInPlace(m *Member) shell.Command {
	if p.logApart(m.Source) == nil {
		return shell.Command{}
	}
	return shell.Format("&& mv -T <DATA_DIR>/member/wal <WAL_DIR>")
}

// PutBack undoes moveAside.
func (p *Plan) PutBack(m *Member) []Command {
	back := shell.Format("mv -T <DATA_DIR>.before-repair <DATA_DIR>")
	if p.logApart(m.Source) != nil {
		return []Command{OnHost(m, "systemd",
			back.Then(shell.Format("&& mv -T <WAL_DIR>.before-repair <WAL_DIR>")))}
	}
	return []Command{OnHost(m, "systemd", back),
		note("where the server has --wal-dir, also: mv -T WAL_DIR.before-repair WAL_DIR")}
}

// asideNote is for a server whose log may be outside of the data dir although the sources do not show it: a copy often
// has it inside.
func (p *Plan) asideNote(m *Member) []Command {
	if p.logApart(m.Source) != nil {
		return nil
	}
	return []Command{note("where the server has --wal-dir, also: mv -T WAL_DIR WAL_DIR.before-repair (on its old " +
		"log it starts under its old ID)")}
}

// inPlaceNote is asideNote for new data dirs, which have the log inside.
func (p *Plan) inPlaceNote(members []*Member) []Command {
	for _, m := range members {
		if p.logApart(m.Source) == nil {
			return []Command{note("where a server has --wal-dir, before it starts: mv -T WAL_DIR " +
				"WAL_DIR.before-repair, then mv -T DATA_DIR/member/wal WAL_DIR (its old log does not belong to the " +
				"new database)")}
		}
	}
	return nil
}
