// franz-go: produces five records, reads them in a group. `client BOOTSTRAP`
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	shop, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ClientID("go-shop"), kgo.DefaultProduceTopic("orders"))
	check(err)
	for n := 0; n < 5; n++ {
		check(shop.ProduceSync(ctx, kgo.StringRecord(fmt.Sprintf("go %d", n))).FirstErr())
		fmt.Println("produced=1")
	}
	shop.Close()
	reader, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ClientID("go-billing"),
		kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	check(err)
	for count := 0; count < 5; {
		fetched := reader.PollFetches(ctx)
		check(fetched.Err())
		count += fetched.NumRecords()
		fmt.Printf("consumed=%d\n", fetched.NumRecords())
	}
	check(reader.CommitUncommittedOffsets(ctx))
	reader.LeaveGroup()
	reader.Close()
}
