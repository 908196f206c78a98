package check

// SecondOpinion is the check of diagnose --confirm. It is in a report only when it was asked for.
var SecondOpinion = described(Check{
	ID:       X10,
	OnDemand: true,
	Run:      func(*Input) Result { return Result{Reason: "needs diagnose --confirm"} },
})
