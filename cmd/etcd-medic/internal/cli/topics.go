package cli

import "github.com/spf13/cobra"

// helpTopics are help pages without a command.
func helpTopics() []*cobra.Command {
	var out []*cobra.Command
	for _, t := range []struct{ name, short, long string }{
		{"exit-codes", "what the exit codes mean", topicExitCodes},
		{"sources", "what can be read, and how to name it", topicSources},
		{"formats", "output formats and their stability", topicFormats},
		{"evidence-rule", "why and how inputs stay unchanged", topicEvidence},
		{"environment", "environment variables", topicEnvironment},
	} {
		out = append(out, &cobra.Command{Use: t.name, Short: t.short, Long: t.long})
	}
	return out
}

const topicExitCodes = `Exit codes of every command:

  0    done; no finding at or above --fail-on (default error)
  1    the tool could not do its job: a file could not be read, or a defect of the tool
  2    wrong usage: unknown flag, missing argument, a path that is not an etcd source
  3    findings at or above --fail-on; for dumplog and dumpdb: damage; for compare: a difference
  4    inconclusive: nothing found, but a needed check could not be made, or a source could not be used
  5    refused: a safety precondition does not hold
  6    a repair started and did not reach its goal; its journal shows the progress
  130  interrupted

The code follows from the printed result: the JSON document holds everything it is derived from.`

const topicSources = `A source is [NAME=]PATH, where PATH is one of

  a data dir                    the folder that holds member/
  a member dir                  the folder that holds wal/ and snap/
  a WAL folder                  the folder that holds *.wal
  a database                    member/snap/db, or a .snap.db file
  a backup                      written by etcdctl or etcdutl snapshot save, or a plain copy of a db
  a raft snapshot               a .snap file
  http(s)://HOST:PORT           the client URL of a running member: its maintenance snapshot is streamed to scratch and
                                read like a backup (--cacert, --cert, --key, --user); --endpoints names it too, and
                                with --cluster all members that it lists
  an archive                    .tar, .tar.gz or .tar.zst of any of these, unpacked into scratch
  s3://, gs://, azblob://       an object, or all objects below a prefix, copied to scratch; parameters follow as
                                ?region=...&endpoint=...; credentials as the drivers of gocloud.dev/blob find them
  a folder of data dirs         stands for each data dir in it, also in folders like node1/etcd or var/lib/etcd;
                                else for each archive in it, as written by collect
  ARCHIVE#PATH                  one source out of an archive of several

The kind is detected and stated. Without NAME, a source gets the member's own name if the member list contains it, else
the end of its path. A WAL folder outside the data dir is given with --wal-dir NAME=PATH.

Copy the data dirs while the members are stopped: a copy taken from a running member may hold files of different moments
(the tool says so when it sees it).`

const topicFormats = `-w, --write-out selects the format of the result on stdout:

  table    for people; may change between releases; simple and text are other names for it
  lines    dumplog and dumpdb: one line per row, whole; what table is in a pipe, where no terminal gives a width
  fields   one "name" : value per line
  json     one document, schemaVersion first; fields may be added, never renamed or given another meaning
  jsonl    one JSON object per line; dumplog and dumpdb stream it in constant memory

The text of diagnose, inspect, verify, repair plan, rehearse and apply is one screen; --full has everything, and ends
with the verdict too. diagnose -q prints the verdict alone. On a terminal a result longer than the screen goes through
$PAGER (else less -FRX), unless --no-pager is given; in a pipe nothing changes.

IDs are lower-case hex strings, revisions and raft indexes numbers. Bytes are {"text": …} when they are printable UTF-8,
else {"base64": …}. Values of keys appear as {"len", "sha256"} (the first 16 hex digits) unless --values is given.
Passwords, their hashes and tokens are hidden; where a command can show them, the flag is --unsafe-show-secrets.

The document depends on the input bytes and flags alone: no clock, no absolute path. docs/JSON.md describes it.`

const topicEvidence = `Evidence is sacred: no command writes to a source.

Files are opened read-only. Nothing is renamed, locked, truncated or repaired, and no code of etcd or bbolt that could
do so touches them: opening a WAL or a backend with etcd's own packages can rewrite both. Archives are unpacked into
scratch folders, which are removed afterwards. A report carries the digest of each source, so that a later run can prove
that it saw the same bytes.

Work on copies nevertheless: the server you are about to restart cannot change them.`

const topicEnvironment = `ETCD_MEDIC_<FLAG> sets the default of a flag that is a setting, with upper case and
underscores: ETCD_MEDIC_WRITE_OUT=json, ETCD_MEDIC_FAIL_ON=warning. The command line wins. Settings are

  --write-out, --fail-on, --values, --quiet and --max-memory
  --cacert, --cert, --key (dumpdb: --tls-key), --user and --password-file, where a command logs in to running members
  --scratch-dir, --scratch, --work, --etcd-binary, --isolation, and every --...timeout and --follow-idle

Other flags have no variable: what filters a listing, names inputs or outputs, or consents to a loss is only taken
from the command line. ETCD_MEDIC_PASSWORD holds the password of --user.

Where a command reaches running members, ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY, ETCDCTL_USER and ETCDCTL_PASSWORD
count as well; ETCD_MEDIC_... wins over them. They never filter a listing. ETCDCTL_ENDPOINTS counts for watch, collect
--all and repair apply, and for commands that read sources where the command line names none: it never adds a source
to those that are named.

Colours are used on a terminal only; --no-color and NO_COLOR switch them off, CLICOLOR_FORCE=1 on in a pipe too. PAGER
is the pager. Below TMPDIR (default /tmp) a command keeps what it unpacks, and keys that do not fit into --max-memory,
while it runs.`
