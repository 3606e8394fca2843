package registrar

import (
	"context"

	"github.com/stele-id/stele"
)

// waves divides an update in which a record comes more than once: the first of each
// record, and all others. Nil if none comes again.
func waves(records []*stele.Record, o ImportOptions) (first, again []int) {
	if !o.Update || len(records) < 2 {
		return nil, nil
	}
	all := make([]int, len(records))
	for i := range all {
		all[i] = i
	}
	return FirstOfEach(all, func(i int) stele.ID { return records[i].ID })
}

// FirstOfEach divides items into the first for each record and the others, in their order: a
// chunk of an import takes a record once.
func FirstOfEach[T any](items []T, id func(T) stele.ID) (first, others []T) {
	seen := make(map[stele.ID]bool, len(items))
	for _, item := range items {
		if seen[id(item)] {
			others = append(others, item)
			continue
		}
		seen[id(item)] = true
		first = append(first, item)
	}
	return first, others
}

// ingestAgain imports the first of each record, and then the others. The bookmark
// comes with the last.
func (r *Registrar) ingestAgain(ctx context.Context, records []*stele.Record, first, again []int, o ImportOptions) ([]error, error) {
	errs := make([]error, len(records))
	early := o
	early.Name = ""
	for k, wave := range [][]int{first, again} {
		list := make([]*stele.Record, len(wave))
		for j, i := range wave {
			list[j] = records[i]
		}
		if k == 1 {
			early = o
		}
		if o.Lines != nil {
			early.Lines = make([][]byte, len(wave))
			for j, i := range wave {
				early.Lines[j] = o.Lines[i]
			}
		}
		if o.Earlier != nil {
			early.Earlier = make([][]*stele.Record, len(wave))
			for j, i := range wave {
				early.Earlier[j] = o.Earlier[i]
			}
		}
		if o.Fixed != nil {
			early.Fixed = make([]*FixedData, len(wave))
			for j, i := range wave {
				early.Fixed[j] = o.Fixed[i]
			}
		}
		if o.Versions != nil {
			early.Versions = make([]uint64, len(wave))
			for j, i := range wave {
				early.Versions[j] = o.Versions[i]
			}
		}
		if o.Changed != nil {
			early.Changed = func(j int, fields []FieldChange) { o.Changed(wave[j], fields) }
		}
		part, err := r.Ingest(ctx, list, early)
		if err != nil {
			return nil, err
		}
		for j, i := range wave {
			errs[i] = part[j]
			if o.Earlier != nil {
				o.Earlier[i] = early.Earlier[j]
			}
		}
	}
	return errs, nil
}
