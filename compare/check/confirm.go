package check

// SecondOpinion is the check of diagnose --confirm. It is in a report only when it was asked for.
var SecondOpinion = Check{
	ID: "X10", Title: "the replay and a real server that executes the log come to the same result",
	Doc: `A diagnosis rests on this program's own rules of what etcd makes of an entry. diagnose --confirm has an etcd server of the right release execute
the committed log in a sandbox, from the first entry of a new cluster, a backup or a received snapshot, and compares what it holds with each
member's database. It is violated where the server's result contradicts the diagnosis: a database that differs although nothing was found
wrong with it, or one that is equal although the replay finds wrong content. A set that was called healthy is then inconclusive.
Not in a report unless diagnose --confirm is given.`,
	OnDemand: true,
	Run:      func(*Input) Result { return Result{Reason: "needs diagnose --confirm"} },
}
