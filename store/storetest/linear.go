package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"

	"github.com/stele-id/stele"
)

// An operation for the linearizability check: two records of a group want the
// same alias, and many clients write and read all three names.
type operation struct {
	group  int
	name   int  // 0 and 1 are the records, 2 is the alias
	write  bool // or read
	number uint64
	claim  bool // the version written has the alias
	turn   int  // decides whether a first version comes by Apply or by Ingest
	value  string
}

// outcome is what an operation gave: for a read, the record's place in its group,
// version and value.
type outcome struct {
	kind   stele.Kind // of the error, if failed
	failed bool
	record int
	number uint64
	value  string
}

// register is the state of one name of a group in the model: the version and the
// value that a reader sees.
type register struct {
	number uint64
	value  string
}

// grouped is the state of a group: its two records, and which record has the alias; -1
// if none.
type grouped struct {
	records [2]register
	owner   int
}

// checkLinearizable: conditional commits and reads, by identifier and by alias,
// of several clients at once, have an order in which each does what a single map
// would do, and which does not contradict the clock.
func checkLinearizable(s *session) {
	const clients, each, groups = 8, 50, 3
	var clock atomic.Int64
	var mu sync.Mutex
	var history []porcupine.Operation
	together(clients, func(client int) {
		random := rand.New(rand.NewPCG(uint64(client), 1))
		var seen [groups][2]uint64 // the versions that this client knows of
		for i := range each {
			op := operation{group: random.IntN(groups), name: random.IntN(3), claim: random.IntN(4) > 0}
			if op.write = op.name < 2 && random.IntN(2) == 0; op.write {
				op.number = seen[op.group][op.name] + 1
				op.value = fmt.Sprintf("%d/%d", client, i)
				op.turn = random.IntN(2)
			}
			call := clock.Add(1)
			out := s.do(op)
			back := clock.Add(1)
			if !out.failed {
				seen[op.group][out.record] = max(seen[op.group][out.record], out.number)
			}
			mu.Lock()
			history = append(history, porcupine.Operation{ClientId: client, Input: op, Call: call, Output: out, Return: back})
			mu.Unlock()
		}
	})
	switch porcupine.CheckOperationsTimeout(groupModel(), history, limit/2) {
	case porcupine.Illegal:
		s.Errorf("the history of %d operations is not linearizable", len(history))
	case porcupine.Unknown:
		s.Errorf("the history of %d operations could not be checked in time", len(history))
	}
	if !slices.ContainsFunc(history, func(o porcupine.Operation) bool {
		return o.Input.(operation).write && !o.Output.(outcome).failed && o.Output.(outcome).number > 2
	}) {
		s.Errorf("no client got further than version 2; the check says nothing")
	}
}

// do carries out an operation on the store.
func (s *session) do(op operation) outcome {
	name := func(n int) stele.ID { return s.ark(fmt.Sprintf("%d/%d", op.group, n)) }
	if !op.write {
		r, err := s.Record(s.ctx, name(op.name))
		if err != nil {
			s.wantKind("a read", err, stele.NotFound)
			return outcome{failed: true, kind: stele.KindOf(err)}
		}
		record := 0
		if r.ID == name(1) {
			record = 1
		}
		return outcome{record: record, number: r.Version, value: r.By}
	}
	r := withVersion(first(name(op.name)), op.number)
	r.By = op.value
	if op.claim {
		r.Aliases = []stele.ID{name(2)}
	}
	if op.number > 1 {
		op.turn = 0
	}
	if err := s.commit(s.ctx, op.turn, r); err != nil {
		s.wantKind("a write", err, stele.Conflict, stele.Invalid)
		return outcome{failed: true, kind: stele.KindOf(err)}
	}
	return outcome{record: op.name, number: op.number, value: op.value}
}

// groupModel is what a group should do.
func groupModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			groups := make(map[int][]porcupine.Operation)
			for _, o := range history {
				groups[o.Input.(operation).group] = append(groups[o.Input.(operation).group], o)
			}
			var parts [][]porcupine.Operation
			for _, g := range groups {
				parts = append(parts, g)
			}
			return parts
		},
		Init: func() any { return grouped{owner: -1} },
		Step: func(state, input, output any) (bool, any) {
			return state.(grouped).step(input.(operation), output.(outcome))
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// step reports whether an operation can have this outcome in this state, and
// returns the state after it.
func (g grouped) step(op operation, out outcome) (bool, grouped) {
	if !op.write {
		record := op.name
		if op.name == 2 {
			record = g.owner
		}
		if record < 0 || g.records[record].number == 0 {
			return out.failed && out.kind == stele.NotFound, g
		}
		return !out.failed && out.record == record && g.records[record] == register{out.number, out.value}, g
	}
	conflict := op.number != g.records[op.name].number+1 || op.claim && g.owner >= 0 && g.owner != op.name
	detached := !op.claim && g.owner == op.name
	if conflict || detached {
		return out.failed && (conflict && out.kind == stele.Conflict || detached && out.kind == stele.Invalid), g
	}
	g.records[op.name] = register{op.number, op.value}
	if op.claim {
		g.owner = op.name
	}
	return !out.failed, g
}
