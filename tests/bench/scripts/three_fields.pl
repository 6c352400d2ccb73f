# Counts system calls by pid, number and CPU.

my %counts;

sub raw_syscalls::sys_enter
{
    my ($event_name, $context, $common_cpu, $common_secs, $common_nsecs, $common_pid, $common_comm,
        $common_callchain, $id, $args) = @_;
    $counts{"$common_pid $id $common_cpu"}++;
}

sub trace_end
{
    my $sum = 0;
    $sum += $_ for values %counts;
    print scalar(keys %counts), " $sum\n";
}
