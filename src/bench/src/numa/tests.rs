use super::*;

fn small() -> NumaMem {
    NumaMem {
        processes: 2,
        threads: 2,
        sizes: MemorySizes {
            global: 1 << 16,
            process: 1 << 15,
            locked: 1 << 14,
            thread: 1 << 13,
        },
        loops: Some(3),
        // Never reached: the loops end the tasks before.
        duration: Duration::from_secs(600),
        pause: Duration::ZERO,
        access: MemoryAccess::default(),
        initial: InitialMemory::default(),
        huge_pages: None,
        cpus: Vec::new(),
        nodes: Vec::new(),
    }
}

#[test]
fn each_task_passes_over_all_of_its_memory() {
    let orders = [
        PassOrder::Forward,
        PassOrder::Alternating,
        PassOrder::Random,
    ];
    // The second run writes only zeros, before the measurement and in each pass; the others begin with random memory.
    for (order, zeros) in orders.into_iter().zip([false, true, false]) {
        let bench = NumaMem {
            access: MemoryAccess {
                order,
                zeros,
                ..MemoryAccess::default()
            },
            initial: InitialMemory {
                zero: zeros,
                random: !zeros,
                on_cpu0: false,
            },
            pause: Duration::from_micros(10),
            ..small()
        };
        let result = bench.run().unwrap();
        assert_eq!(result.tasks.len(), 4);
        let bytes = 3 * ((1 << 16) + (1 << 15) + (1 << 14) + (1 << 13));
        assert!(
            result.tasks.iter().all(|task| task.bytes == bytes),
            "{result:?}"
        );
        assert!(result.fastest() <= result.average() && result.average() <= result.slowest());
        assert!(result.fastest() > 0.0, "{result:?}");
    }
}

#[test]
fn tasks_end_when_the_time_is_over() {
    let bench = NumaMem {
        loops: None,
        duration: Duration::from_millis(20),
        ..small()
    };
    let result = bench.run().unwrap();
    // The shortest time of a task, in seconds.
    assert!(result.fastest() >= 0.02, "{result:?}");
}

#[test]
fn a_task_on_a_missing_cpu_fails() {
    let bench = NumaMem {
        cpus: vec![30_000],
        ..small()
    };
    let error = bench.run().unwrap_err();
    assert!(matches!(error, BenchError::System { .. }), "{error:?}");
}

#[test]
fn tasks_with_a_node_run_if_the_kernel_can_bind_memory() {
    let bench = NumaMem {
        // The nodes of the first two tasks; the other two have none.
        nodes: vec![0, 0],
        ..small()
    };
    match bench.run() {
        Ok(result) => assert_eq!(result.tasks.len(), 4),
        // A kernel without NUMA, or a sandbox that forbids the binding.
        Err(error) => assert!(matches!(error, BenchError::System { .. }), "{error:?}"),
    }
}
